export {};
//# sourceMappingURL=registry-options.js.map