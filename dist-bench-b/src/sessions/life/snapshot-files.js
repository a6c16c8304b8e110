/** The scratch filesystem as a snapshot left it, for as long as no engine holds the live one. */
export function snapshotFiles(contents, modifiedAt) {
    const bytesOf = (path) => {
        const base64 = Object.hasOwn(contents, path) ? contents[path] : undefined;
        return base64 === undefined ? undefined : Buffer.from(base64, 'base64');
    };
    return {
        list: () => Object.keys(contents).map((path) => ({ path, bytes: bytesOf(path).byteLength, modifiedAt })),
        read: bytesOf,
    };
}
//# sourceMappingURL=snapshot-files.js.map