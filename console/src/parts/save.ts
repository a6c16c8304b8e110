/** Hands a file to the person. It is never opened here: what an agent made could be anything. */
export function save(name: string, content: Blob): void {
  const link = document.createElement('a')
  const url = URL.createObjectURL(new Blob([content], { type: 'application/octet-stream' }))
  link.href = url
  link.download = name
  link.click()
  // the browser has taken it by then
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
