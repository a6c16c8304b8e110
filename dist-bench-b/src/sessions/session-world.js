export {};
//# sourceMappingURL=session-world.js.map