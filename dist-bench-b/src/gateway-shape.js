export {};
//# sourceMappingURL=gateway-shape.js.map