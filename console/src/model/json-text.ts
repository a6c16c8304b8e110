/** A value as indented JSON, up to about `limit` characters: what is beyond is not even looked at. */
export function jsonText(value: unknown, limit: number): { text: string; isCut: boolean } {
  const parts: string[] = []
  let length = 0
  let isCut = false
  const put = (text: string): boolean => {
    if (isCut) return false
    const room = limit - length
    if (text.length > room) isCut = true
    parts.push(isCut ? text.slice(0, Math.max(0, room)) : text)
    length += text.length
    return !isCut
  }
  const write = (inner: unknown, indent: string, depth: number): void => {
    if (isCut) return
    if (typeof inner === 'string') put(JSON.stringify(inner.length > limit ? inner.slice(0, limit) : inner))
    else if (typeof inner !== 'object' || inner === null) put(JSON.stringify(inner) ?? 'null')
    else if (depth > 100) put('…')
    else {
      const isList = Array.isArray(inner)
      put(isList ? '[' : '{')
      let isFirst = true
      for (const name in inner) {
        if (isCut) return
        put(`${isFirst ? '' : ','}\n${indent}  `)
        isFirst = false
        if (!isList) put(`${JSON.stringify(name)}: `)
        write((inner as Record<string, unknown>)[name], `${indent}  `, depth + 1)
      }
      put(`${isFirst ? '' : `\n${indent}`}${isList ? ']' : '}'}`)
    }
  }
  write(value, '', 0)
  return { text: parts.join(''), isCut }
}
