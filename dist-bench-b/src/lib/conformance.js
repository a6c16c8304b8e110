export {};
//# sourceMappingURL=conformance.js.map