/** The fields that are there: what is undefined is left out, as JSON does it. */
export const present = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
//# sourceMappingURL=present.js.map