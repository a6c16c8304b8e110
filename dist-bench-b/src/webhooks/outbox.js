export {};
//# sourceMappingURL=outbox.js.map