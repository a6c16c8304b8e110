import { join } from 'node:path'
import t from 'tap'
import { until } from '../fixtures/build.js'
import { axe, consoleWorld, openConsole, shot, skipWithoutChromium } from '../fixtures/console-browser.js'

t.test(
  'the tour: start, stream, edit the input, allow, a deliverable, a question, interrupt, close',
  { skip: skipWithoutChromium },
  async (t) => {
    const { consoleUrl, cwd, call } = await consoleWorld(t)
    const { page, complaints, strangers } = await openConsole(t, consoleUrl, { at: 'sessions' })

    await page.getByText('No session yet.').waitFor()
    await shot(page, 'sessions-empty')
    await page.getByRole('button', { name: 'New session' }).click()
    await page.getByLabel('Directory').fill(join(cwd, 'work'))
    await page.getByLabel('First message').fill('Please write a report about tides.')
    t.strictSame(await axe(page), [])
    await shot(page, 'start')
    await page.getByRole('button', { name: 'Start session' }).click()

    const asked = page.getByRole('region', { name: 'What is waited for' })
    await asked.getByText('fs_write').first().waitFor()
    await until(async () => /^\(1\) /.test(await page.title()), 'a title that says that something waits')
    t.strictSame(await axe(page), [])
    await shot(page, 'transcript-asks')
    await asked.getByRole('button', { name: 'Edit input' }).click()
    await asked.getByRole('radio', { name: 'JSON' }).check()
    const input = asked.getByLabel('Input as JSON')
    await input.fill((await input.inputValue()).replace('Demonstration report', 'Edited by hand'))
    await asked.getByRole('button', { name: 'Allow with this input' }).click()
    const log = page.getByRole('log')
    // handing it over is asked for, too
    await asked.getByText('deliver_file').first().waitFor()
    await asked.getByRole('button', { name: 'Allow', exact: true }).click()
    await log
      .getByRole('button', { name: /report\.md/ })
      .last()
      .waitFor()
    await log.getByText(/Turn over/).waitFor()
    await asked.waitFor({ state: 'detached' })
    const id = /sessions\/([^/?]+)/.exec(page.url())![1]
    const written = await (await call(`/sessions/${id}/files/report.md`)).text()
    t.match(written, /^# Edited by hand/, 'what ran is what was edited')
    await log.getByRole('button', { name: /fs_write/ }).click()
    await log.getByRole('heading', { name: 'Asked for' }).waitFor()
    await log.getByText(/Demonstration report/).waitFor()

    const message = page.getByRole('textbox', { name: 'Message' })
    await message.fill('Ask me a question')
    await message.press('Enter')
    await asked.getByText('Which colour do you like better?').waitFor()
    t.strictSame(await axe(page), [])
    await shot(page, 'transcript-question')
    await asked.getByLabel('Green').check()
    await asked.getByRole('button', { name: 'Answer', exact: true }).click()
    await log.getByText('You chose Green').first().waitFor()

    await message.fill('@@[{"text":"I wait","hang":true}]@@')
    await message.press('Enter')
    await log.getByText('I wait', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Interrupt' }).click()
    await log.getByText('Turn interrupted').waitFor()

    await message.fill('Hello again')
    await message.press('Enter')
    await log.getByText('Hello again', { exact: true }).waitFor()
    await log.getByText(/Your message had 2 words/).waitFor()
    await shot(page, 'transcript')
    t.strictSame(await axe(page), [])

    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('button', { name: 'Close session' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Close session' }).click()
    await page.getByText('This session is closed.').waitFor()
    await page.getByRole('link', { name: 'Back to the sessions' }).click()
    await page
      .getByRole('list', { name: /Sessions/ })
      .getByText('Closed')
      .first()
      .waitFor()
    await shot(page, 'sessions')
    t.strictSame(await axe(page), [])
    t.strictSame(complaints, [])
    t.strictSame(strangers, [])
  },
)
