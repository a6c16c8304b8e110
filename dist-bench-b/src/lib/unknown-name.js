/** `unknown key`, with the nearest known name when there is a near one. */
export function unknownName(what, name, known) {
    const near = known
        .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
        .filter(({ distance }) => distance <= (name.length < 4 ? 1 : Math.max(2, name.length / 3)))
        .sort((a, b) => a.distance - b.distance)[0];
    return near ? `unknown ${what}; did you mean ${near.candidate}?` : `unknown ${what}`;
}
/** Levenshtein's. */
function editDistance(a, b) {
    let row = Array.from({ length: b.length + 1 }, (_, index) => index);
    for (let i = 1; i <= a.length; i++) {
        const next = [i];
        for (let j = 1; j <= b.length; j++)
            next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
        row = next;
    }
    return row[b.length];
}
//# sourceMappingURL=unknown-name.js.map