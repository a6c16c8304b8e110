export {};
//# sourceMappingURL=runner.js.map