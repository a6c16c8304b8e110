/** Lets a daemon find no SQLite in Node itself: as on Node 20. */
const { getBuiltinModule } = process
process.getBuiltinModule = (name) => (name === 'node:sqlite' ? undefined : getBuiltinModule(name))
