import t from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { axe, openConsole, shot, skipWithoutChromium } from '../fixtures/console-browser.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

t.test(
  'the page of a link can be read on a phone, also at twice the size, and heard',
  { skip: skipWithoutChromium },
  async (t) => {
    const sink = await WebhookSink.start(t)
    const { engine, call, url } = await buildServer(t, {
      notifications: {
        channels: [{ format: 'webhook', name: 'phone', url: sink.url, events: ['permission_requested'] }],
        publicUrl: 'https://gateway.example',
        answerLinks: true,
      },
    })
    await call('POST', '/sessions', { cwd: SOME_CWD, title: 'The report of the second quarter', approvalTimeoutMs: 0 })
    const command = `find . -name ${'x'.repeat(300)} && ${'echo more && '.repeat(20)}`
    void engine.last.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: { command } })
    await until(() => sink.received.length === 1)
    const { page } = await openConsole(t, url, { width: 360, height: 640, loses: true })
    await page.goto(sink.received[0]!.body.answerUrl.replace('https://gateway.example', url))
    await page.getByRole('button', { name: 'Allow' }).waitFor()
    t.strictSame(await axe(page), [])
    await page.setViewportSize({ width: 180, height: 320 })
    await shot(page, 'answer-page-twice-the-size')
    const title = (await page.getByText('The report of the second quarter').boundingBox())!
    t.ok(title.width > 120, `the title has ${title.width} pixels`)
    t.equal(await page.evaluate('document.documentElement.scrollWidth'), 180)
  },
)
