import t from 'tap'
import {
  allAnswered,
  axe,
  consoleWorld,
  openConsole,
  shot,
  skipWithoutChromium,
  type WindowOptions,
} from '../fixtures/console-browser.js'
import { seeding, waitingFor } from '../fixtures/console-seeds.js'
import { asksToWrite, script } from '../fixtures/demo.js'

const LOOKS: [string, WindowOptions][] = [
  ['light', {}],
  ['dark', { dark: true }],
  ['phone', { width: 320, height: 640 }],
]
/** With what is at the head of each. */
const SCREENS = [
  ['inbox', 'Inbox'],
  ['queue', 'Queue'],
  ['usage', 'Usage'],
  ['profiles', 'Profiles'],
  ['profiles/demo', 'demo'],
  ['settings', 'Settings and health'],
] as const

t.test(
  'every screen is what axe approves of, in light, in dark and on a phone',
  { skip: skipWithoutChromium },
  async (t) => {
    const world = await consoleWorld(t, { queue: { maxConcurrency: 2 } })
    const { client, session, job } = seeding(world)
    await session(
      script(asksToWrite('notes/release.md', '# Release 2.4\n\n- faster start\n- fewer files')),
      'Write the release notes',
    )
    await session(
      script({
        tools: [
          {
            tool: 'fs_write',
            input: {
              path: 'migrations/0042_add_index.sql',
              content: 'create index on orders (customer_id, created_at);',
            },
          },
        ],
      }),
      'Speed up the order list',
    )
    await session('Please ask me something.', 'Choose a colour for the chart')
    await session(script(asksToWrite('docs/مرحبا.md', 'مرحبا')), 'ترجمة الصفحة الأولى')
    await session('How are you?')
    const failed = await job(script({ fail: 'the upstream said no' }))
    await client.jobs.wait(failed.id)
    await job('Summarise the open issues and say which are urgent.')
    await job(script({ fail: 'the upstream said no' }), { attempts: 3, retryDelayMs: 3_600_000 })
    await job(script(asksToWrite('report.md')))
    await job(script({ hang: true }))
    await job('Check the links of the manual')
    await waitingFor(client, 4)

    for (const [look, options] of LOOKS)
      await t.test(look, async (t) => {
        const { page, complaints, strangers } = await openConsole(t, world.consoleUrl, options)
        for (const [screen, heading] of [...SCREENS, [`queue/${failed.id}`, 'Job'] as const]) {
          await page.goto(`${page.url().split('#')[0]}#/${screen}`)
          await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor()
          await page.locator('.loading').first().waitFor({ state: 'detached' })
          await allAnswered(page)
          if (screen === 'inbox') await page.locator('.ask-head').nth(1).click()
          const name = screen.replace(failed.id, 'job').replace('/', '-')
          await shot(page, `${name}-${look}`)
          t.strictSame(await axe(page), [], screen)
          const overs = await page.evaluate<number[]>(
            "[document.documentElement, document.querySelector('main')].map((it) => it.scrollWidth - it.clientWidth)",
          )
          t.strictSame(overs, [0, 0], `${screen} fits the width`)
        }
        t.strictSame(complaints, [])
        t.strictSame(strangers, [])
      })
  },
)
