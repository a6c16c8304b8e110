/** Keeps managed profiles for as long as the process runs. */
export function createMemoryProfileStore({ onKey } = {}) {
    const profiles = new Map();
    return {
        list: () => [...profiles.values()].map((profile) => structuredClone(profile)),
        save: (profile, key) => {
            profiles.set(profile.name, structuredClone(profile));
            if (key)
                onKey?.(key);
        },
        delete: (name) => void profiles.delete(name),
    };
}
//# sourceMappingURL=profile-store.js.map