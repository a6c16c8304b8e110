export {};
//# sourceMappingURL=journal-owner.js.map