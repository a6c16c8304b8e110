export {};
//# sourceMappingURL=carried-files.js.map