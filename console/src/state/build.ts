import { signal } from '@preact/signals'

/** Whether the gateway has another build of this page by now. */
export const isOfBefore = signal(false)

/** The script that a built page begins with, whose name says which build it is. */
const SCRIPT = /assets\/[\w-]+\.js/
const nameIn = (text: string | undefined): string | undefined => SCRIPT.exec(text ?? '')?.[0]
const own = nameIn(document.querySelector<HTMLScriptElement>('script[type=module]')?.src)

/** Asks for the page itself, once there may be another one: what no console is says nothing of that. */
export async function askForBuild(): Promise<void> {
  try {
    const page = await fetch(location.pathname, { cache: 'no-cache', redirect: 'error' })
    const name = page.ok ? nameIn(await page.text()) : undefined
    if (own !== undefined && name !== undefined) isOfBefore.value = name !== own
  } catch {
    // it is asked again when the connection is back the next time
  }
}
