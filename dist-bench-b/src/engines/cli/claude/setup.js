export {};
//# sourceMappingURL=setup.js.map