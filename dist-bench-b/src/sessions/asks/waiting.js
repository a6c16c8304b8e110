export {};
//# sourceMappingURL=waiting.js.map