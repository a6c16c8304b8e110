/** An object like another one, whose methods are called by `around`. */
export function eachCall<T extends object>(target: T, around: (name: string, call: () => unknown) => unknown): T {
  const known = new Map<PropertyKey, unknown>()
  // not around the object itself: of one that is frozen a proxy may show nothing else
  return new Proxy(Object.create(target) as T, {
    get(_target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      if (!known.has(name)) {
        // looked up at each call: a host may have replaced it
        const call = (given: unknown[]) => Reflect.apply(Reflect.get(target, name) as typeof member, target, given)
        known.set(name, (...given: unknown[]) => around(String(name), () => call(given)))
      }
      return known.get(name)
    },
  })
}
