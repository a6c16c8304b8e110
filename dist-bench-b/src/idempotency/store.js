export const REMEMBERED_MS = 24 * 60 * 60 * 1000;
//# sourceMappingURL=store.js.map