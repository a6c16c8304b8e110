import { execFileSync } from 'node:child_process'
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core'
import { CHROMIUM_FLAGS, chromiumPath } from '../test/fixtures/runtimes.js'
import { format, interleave, line, MB, median, verdict } from './lib/figures.js'
import { ServerProcess } from './lib/server-process.js'

const EVENTS = 100_000
const ROUNDS = 3
const VISITS = 50
const WHEELS = 40
const TARGETS = { openMs: 1_500, taskMs: 100, heapMb: 60 }

/** What a long transcript costs a browser, beside a page that has the same log as text in one `<pre>`. */
export async function consoleInBrowser(): Promise<void> {
  if (!chromiumPath) {
    console.log('console: Chromium is not installed')
    return
  }
  execFileSync('npm', ['run', 'build:console', '--silent'], { stdio: 'inherit' })
  const server = await ServerProcess.start('servers/console.js')
  const browser = await chromium.launch({ executablePath: chromiumPath, args: CHROMIUM_FLAGS })
  try {
    const url = await server.call<string>('url')
    const id = await server.call<string>('session', EVENTS)
    const [ours, bare]: Figures[][] = [[], []]
    const opened = await interleave(
      ROUNDS,
      async () => keep(ours!, await transcript(browser, url, id)),
      async () => keep(bare!, await plain(browser, url, id)),
    )
    const of = (all: Figures[], name: keyof Figures): number[] => all.slice(1).map((figures) => figures[name])
    console.log(`${line(`console: a transcript of ${EVENTS} events opens, beside the same in a <pre>`, opened, 'ms')}`)
    console.log(`  opens in ${format(median(opened.ours))} ms${verdict(median(opened.ours), TARGETS.openMs, 'ms')}`)
    for (const [name, what, unit, target] of [
      ['heapMb', 'heap', 'MB', TARGETS.heapMb],
      ['longestMs', 'longest task while it scrolls', 'ms', TARGETS.taskMs],
    ] as const) {
      const figure = median(of(ours!, name))
      console.log(`${line(`console: ${what}`, { ours: of(ours!, name), baseline: of(bare!, name) }, unit)}`)
      console.log(`  ${what} ${format(figure)} ${unit}${verdict(figure, target, unit)}`)
    }
    await visits(browser, server, url)
  } finally {
    await browser.close()
    await server.stop()
  }
}

interface Figures {
  openMs: number
  heapMb: number
  longestMs: number
}

function keep(all: Figures[], figures: Figures): number {
  all.push(figures)
  return figures.openMs
}

async function transcript(browser: Browser, url: string, id: string): Promise<Figures> {
  return inPage(browser, async (page) => {
    await page.goto(`${url}/v1/console/#/sessions/${id}`)
    await page
      .getByRole('log')
      .getByText(`That was step ${EVENTS - 2}`)
      .or(page.getByText(`Step ${EVENTS - 1}`))
      .first()
      .waitFor()
    return '.scroller'
  })
}

async function plain(browser: Browser, url: string, id: string): Promise<Figures> {
  return inPage(browser, async (page) => {
    await page.route('**/bare', (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: '<!doctype html><style>pre{white-space:pre-wrap}</style><pre></pre>',
      }),
    )
    await page.goto(`${url}/bare`)
    await page.evaluate(async (events) => {
      const { document } = globalThis as unknown as {
        document: { querySelector(s: string): { textContent: string; getBoundingClientRect(): object } }
      }
      let text = ''
      for (let after = 0; ; ) {
        const page = (await (await fetch(`${events}?afterSeq=${after}`)).json()) as {
          events: object[]
          nextAfterSeq: number
          lastSeq: number
        }
        for (const event of page.events) text += `${JSON.stringify(event)}\n`
        after = page.nextAfterSeq
        if (after >= page.lastSeq) break
      }
      document.querySelector('pre').textContent = text
      document.querySelector('pre').getBoundingClientRect()
    }, `${url}/v1/sessions/${id}/events`)
    return 'html'
  })
}

/** @param open opens what is to be measured. @returns by it: what scrolls */
async function inPage(browser: Browser, open: (page: Page) => Promise<string>): Promise<Figures> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  const page = await context.newPage()
  const start = performance.now()
  const scroller = await open(page)
  const openMs = performance.now() - start
  await page.evaluate(() => {
    const world = globalThis as unknown as { tasks: number[] }
    world.tasks = []
    const { PerformanceObserver: Observer } = globalThis as unknown as {
      PerformanceObserver: new (
        callback: (list: { getEntries(): { duration: number }[] }) => void,
      ) => { observe(of: object): void }
    }
    new Observer((list) => world.tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({
      type: 'longtask',
    })
  })
  for (let wheel = 0; wheel < WHEELS; wheel++)
    await page.evaluate(async (selector) => {
      const { document, requestAnimationFrame } = globalThis as unknown as {
        document: { querySelector(s: string): { scrollBy(x: number, y: number): void } }
        requestAnimationFrame(callback: () => void): void
      }
      document.querySelector(selector).scrollBy(0, -1_200)
      await new Promise<void>((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve())))
    }, scroller)
  const longestMs = await page.evaluate(() => Math.max(0, ...(globalThis as unknown as { tasks: number[] }).tasks))
  const heapMb = await heapOf(await context.newCDPSession(page))
  await context.close()
  return { openMs, heapMb, longestMs }
}

async function heapOf(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.enable')
  await session.send('HeapProfiler.collectGarbage')
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = await session.send('Runtime.getHeapUsage')
  return usedSize / MB
}

/** Whether what was visited is let go. */
async function visits(browser: Browser, server: ServerProcess, url: string): Promise<void> {
  const ids: string[] = []
  for (let n = 0; n < VISITS; n++) ids.push(await server.call<string>('session', 2_000))
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  const page = await context.newPage()
  const session = await context.newCDPSession(page)
  await page.goto(`${url}/v1/console/#/sessions`)
  const heaps: number[] = []
  for (const id of ids) {
    await page.evaluate((hash) => {
      ;(globalThis as unknown as { location: { hash: string } }).location.hash = hash
    }, `#/sessions/${id}`)
    await page.getByRole('log').getByText('The next one follows').last().waitFor()
    await page.evaluate(() => {
      ;(globalThis as unknown as { location: { hash: string } }).location.hash = '#/sessions'
    })
    await page.getByRole('list', { name: /Sessions/ }).waitFor()
    heaps.push(await heapOf(session))
  }
  await context.close()
  const [early, late] = [heaps.slice(5, 10), heaps.slice(-5)]
  console.log(
    line(`console: heap after ${VISITS} sessions visited, beside after 10`, { ours: late, baseline: early }, 'MB', 1.2),
  )
}
