import type { Page } from 'playwright-core'
import t from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { buildConsole, openConsole, shot, skipWithoutChromium, unisolatedOn } from '../fixtures/console-browser.js'
import { HOSTILE_TEXTS } from '../fixtures/hostile-texts.js'
import { isLong } from '../fixtures/rounds.js'

/** Every so many of them in the short form. */
const EVERY = isLong ? 1 : 5
const TEXTS = HOSTILE_TEXTS.filter(
  (text, at) => (at % EVERY === 0 || /[\u0590-\u08ff]/.test(text)) && text.trim() !== '',
)

/** Elements and attributes that only a text which was taken for markup would bring in, and addresses that lead out. */
const FOUND = `(() => {
  const all = [...document.querySelectorAll('#app *')]
  const bad = all.filter((one) =>
    one.matches('script, iframe, object, embed, base, video, audio, style, link, meta, marquee, math, foreignObject, form[action]') ||
    one.getAttributeNames().some((name) => /^on|^srcdoc$|^ping$|^formaction$|^background$/.test(name)) ||
    (one.matches('a[href]') && !/^#\\//.test(one.getAttribute('href'))) ||
    (one.matches('img') && one.getAttribute('src') !== './icon.svg'))
  return { ran: globalThis.__ran, bad: bad.map((one) => one.outerHTML.slice(0, 200)), title: document.title }
})()`

t.test(
  'nothing that agents and users say runs or loads on the other screens',
  { skip: skipWithoutChromium },
  async (t) => {
    buildConsole()
    const described = TEXTS.slice(0, 40)
    const { url, call, engine } = await buildServer(t, {
      console: true,
      script: {},
      queue: { maxConcurrency: 1 },
      allowUnauthenticated: true,
      profiles: ['scripted', ...described.map((_, at) => `p${at}`)].map((name, at) => ({
        ...{ name, engine: 'provider' as const, provider: { id: 'scripted', model: described[at] || 'm' } },
        description: described[at - 1] ?? '',
      })),
    })
    for (const text of TEXTS) {
      const title = text.length <= 500 ? { title: text } : {}
      await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', approvalTimeoutMs: 0, ...title })
      const { host } = engine.runners.at(-1)!
      const words = { title: text, description: text, decisionReason: text, agentId: text }
      void host.requestPermission({
        toolName: text,
        toolUseId: text,
        input: { command: text, [text]: [text] },
        ...words,
      })
      const option = { label: text, description: text }
      const questions = [{ question: text, header: text, options: [option, option] }]
      void host.requestPermission({ toolName: 'AskUserQuestion', toolUseId: 'q', input: { questions } })
      await call('POST', '/jobs', {
        session: { cwd: SOME_CWD, profile: 'scripted', prompt: text },
        meta: { [text]: text },
      })
    }
    const { json: jobs } = await call('GET', '/jobs')
    const { page, complaints, strangers } = await openConsole(t, `${url}/v1/console/`, { at: 'inbox' })
    const check = async (where: string) => {
      const { ran, bad, title } = await page.evaluate<{ ran: unknown; bad: string[]; title: string }>(FOUND)
      t.equal(ran, undefined, `${where}: nothing ran`)
      t.strictSame(bad, [], where)
      t.strictSame(await unisolatedOn(page), [], `${where}: nothing moves what stands beside it`)
      t.match(title, /· session-gateway$/)
    }
    await page.locator('.ask').nth(TEXTS.length).waitFor()
    await check('the inbox')
    let walked = 0
    const walk = async () => {
      for (const shown = await page.locator('.ask').count(); walked < shown; walked++) {
        await page.keyboard.press('j')
        await page.locator(`.ask:nth-child(${walked + 1}) .ask-body`).waitFor()
        if (walked % 10 === 0) await check(`the inbox, row ${walked}`)
      }
    }
    await walk()
    // more than are shown at once come when some were answered
    if (walked < TEXTS.length * 2) {
      await page.getByLabel('Choose all approvals').check()
      await page.getByRole('button', { name: /^Deny \d+…/ }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Deny', exact: true }).click()
      await page
        .locator('.ask')
        .nth(TEXTS.length * 2 - 1)
        .waitFor()
      await page.locator(`.ask:nth-child(${walked}) .ask-head`).focus()
      await walk()
    }
    t.equal(walked, TEXTS.length * 2)
    await shot(page, 'hostile-inbox')
    await page.locator('.ask [data-key="edit"], .ask-question').first().waitFor()
    const visit = async (route: string, selector: string) => {
      await page.goto(`${page.url().split('#')[0]}#/${route}`)
      await page.locator(selector).first().waitFor()
      await check(route)
    }
    await visit('queue', '.job-card')
    await shot(page, 'hostile-queue')
    for (const { id } of jobs.slice(0, isLong ? 200 : 6)) await visit(`queue/${id}`, '.job-main')
    await visit('profiles', '.profile')
    for (let at = 0; at < (isLong ? described.length : 4); at++) await visit(`profiles/p${at}`, '.profile-detail')
    await visit('usage', '.totals')
    await visit('settings', '.settings')
    await fits(page)
    t.strictSame(complaints, [])
    t.strictSame(strangers, [])

    async function fits(page: Page) {
      await page.setViewportSize({ width: 320, height: 640 })
      await visit('inbox', '.ask')
      t.equal(await page.evaluate<number>('Math.max(0, document.documentElement.scrollWidth - innerWidth)'), 0)
    }
  },
)
