import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { buildServer } from '../fixtures/build.js'
import { allAnswered, isLive, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

const { url, call } = await buildServer(t, {
  console: true,
  script: {},
  authenticate: () => ({ name: 'ann', canManageProfiles: true }),
  profileStore: createMemoryProfileStore(),
})
const open = async (t: Test, at: string): Promise<Page> =>
  (await openConsole(t, `${url}/v1/console/`, { at, loses: true })).page
const looks = (page: Page) => page.evaluate("dispatchEvent(new Event('focus'))")

const PROFILE = { engine: 'provider', provider: { id: 'scripted', model: 'first' } }

t.test('what another window has done to profiles is seen by who looks again', { skip }, async (t) => {
  const page = await open(t, 'profiles')
  await isLive(page)
  await call('POST', '/profiles', { ...PROFILE, name: 'later', description: 'As it was' })
  await looks(page)
  await page.getByRole('link', { name: /later/ }).click()
  await page.getByText('As it was').waitFor()
  await call('PATCH', '/profiles/later', { description: 'As it is' })
  await looks(page)
  await page.getByText('As it is').waitFor()
})

t.test('of two windows that edit one profile the second takes nothing back unseen', { skip }, async (t) => {
  await call('POST', '/profiles', { ...PROFILE, name: 'shared' })
  const page = await open(t, 'profiles/shared')
  const dialog = page.getByRole('dialog')
  const edit = () => page.getByRole('button', { name: 'Edit' }).click()
  const save = () => dialog.getByRole('button', { name: 'Save' }).click()
  const profile = async () => (await call('GET', '/profiles/shared')).json.profile
  const models = ['first', 'second', 'third']

  await edit()
  await call('PATCH', '/profiles/shared', { provider: { ...PROFILE.provider, models } })
  await dialog.getByLabel('Description').fill('Ours')
  await dialog.getByLabel('Model', { exact: true }).fill('second')
  await save()
  await dialog.waitFor({ state: 'detached' })
  const ours = { description: 'Ours', provider: { id: 'scripted', model: 'second', models } }
  t.match(await profile(), ours, 'what was changed here, and nothing else')

  await edit()
  await call('PATCH', '/profiles/shared', { provider: { id: 'scripted', model: 'third', models } })
  await dialog.getByLabel('Model', { exact: true }).fill('fourth')
  await save()
  await dialog.getByText('Somebody else has changed this meanwhile.').waitFor()
  await allAnswered(page)
  t.equal((await profile()).provider.model, 'third')
  t.equal(await dialog.getByLabel('Model', { exact: true }).inputValue(), 'fourth')
  await save()
  await dialog.waitFor({ state: 'detached' })
  t.equal((await profile()).provider.model, 'fourth')
})

t.test('what is begun of a profile outlives a reload, and takes nothing back either', { skip }, async (t) => {
  await call('POST', '/profiles', { ...PROFILE, name: 'reloaded' })
  const page = await open(t, 'profiles/reloaded')
  const dialog = page.getByRole('dialog')
  const edit = () => page.getByRole('button', { name: 'Edit' }).click()
  const description = dialog.getByLabel('Description')
  await edit()
  await description.fill('Half a thou')
  await call('PATCH', '/profiles/reloaded', { provider: { id: 'scripted', model: 'second' } })
  await page.reload()
  await edit()
  t.equal(await description.inputValue(), 'Half a thou')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  const { profile } = (await call('GET', '/profiles/reloaded')).json
  t.match(profile, { description: 'Half a thou', provider: { model: 'second' } })
  // read again after it was saved
  await page.getByText('Half a thou').waitFor()
  await edit()
  await description.fill('Another thou')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await dialog.waitFor({ state: 'detached' })
  await edit()
  t.equal(await description.inputValue(), 'Half a thou', 'what was given up is not there again')

  await page.goto(`${url}/v1/console/#/profiles`)
  const create = () => page.getByRole('button', { name: 'New profile' }).click()
  await create()
  await dialog.getByLabel('Name', { exact: true }).fill('half-a-pro')
  await page.reload()
  await create()
  t.equal(await dialog.getByLabel('Name', { exact: true }).inputValue(), 'half-a-pro')
})

t.test('why a profile is not deleted stays said when the profile is read again', { skip }, async (t) => {
  await call('POST', '/profiles', { ...PROFILE, name: 'kept' })
  const page = await open(t, 'profiles/kept')
  const refused = { status: 409, json: { code: 'SG_ERR_CONFLICT', detail: 'Not this one.' } }
  await page.route('**/v1/profiles/kept', (route) =>
    route.request().method() === 'DELETE' ? route.fulfill(refused) : route.fallback(),
  )
  await page.getByRole('button', { name: 'Delete…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('Not this one.').waitFor()
  t.equal(await page.getByRole('button', { name: 'Try again' }).count(), 0, 'which would read it')
  await isLive(page)
  await Promise.all([page.waitForResponse('**/v1/profiles/kept'), looks(page)])
  await allAnswered(page)
  t.equal(await page.getByText('Not this one.').count(), 1)
})

t.test(
  'a profile that was deleted elsewhere is said to be gone, with all that could be done with it',
  { skip },
  async (t) => {
    const gone = (page: Page) => page.getByText('This profile is no longer there')
    const nothingLeft = async (page: Page) => {
      await gone(page).waitFor()
      await page.locator('main h1').and(page.locator(':focus')).waitFor()
      t.equal(await page.getByRole('heading', { name: 'Profile', exact: true }).count(), 0)
      t.equal(await page.getByRole('button', { name: /Edit|Delete/ }).count(), 0)
      t.equal(await page.getByRole('alert').count(), 0)
    }
    await call('POST', '/profiles', { ...PROFILE, name: 'looked-at' })
    const page = await open(t, 'profiles/looked-at')
    await isLive(page)
    await page.getByRole('button', { name: 'Edit' }).focus()
    await call('DELETE', '/profiles/looked-at')
    await looks(page)
    await nothingLeft(page)
    // nor is it back where it cannot be read
    const refused = { status: 409, json: { code: 'SG_ERR_CONFLICT', detail: 'Not now.' } }
    await page.route('**/v1/profiles/looked-at', (route) => route.fulfill(refused))
    await looks(page)
    await page.getByText('Not now.').waitFor()
    t.equal(await page.getByRole('button', { name: /Edit|Delete/ }).count(), 0)
    await gone(page).waitFor()

    await call('POST', '/profiles', { ...PROFILE, name: 'deleted-twice' })
    const other = await open(t, 'profiles/deleted-twice')
    await other.getByRole('button', { name: 'Delete…' }).click()
    await call('DELETE', '/profiles/deleted-twice')
    await other.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await nothingLeft(other)

    await call('POST', '/profiles', { ...PROFILE, name: 'edited' })
    const third = await open(t, 'profiles/edited')
    await isLive(third)
    await third.getByRole('button', { name: 'Edit' }).click()
    await third.getByLabel('Description').fill('Half a thou')
    await call('DELETE', '/profiles/edited')
    await looks(third)
    await gone(third).waitFor()
    t.equal(await third.getByLabel('Description').inputValue(), 'Half a thou', 'what is being written stays')
    await third.keyboard.press('Escape')
    await nothingLeft(third)
  },
)

t.test('a worker that the browser throws away is told of, and waited for no longer', { skip }, async (t) => {
  const page = await open(t, 'inbox')
  const me = { required: false, authenticated: true, features: { queue: false, profileStore: false, webPush: true } }
  await page.route('**/v1/console/me', (route) => route.fulfill({ json: me }))
  await page.route('**/v1/notifications/vapid-key', (route) => route.fulfill({ json: { publicKey: 'AAAA' } }))
  await page.addInitScript(`{
    const worker = Object.assign(new EventTarget(), { state: 'installing' })
    const become = (state) => {
      worker.state = state
      worker.dispatchEvent(new Event('statechange'))
    }
    const register = async () => {
      setTimeout(() => become('installed'))
      setTimeout(() => become('redundant'))
      return { installing: worker, waiting: null, active: null }
    }
    Object.defineProperty(navigator, 'serviceWorker', {
      value: Object.assign(new EventTarget(), { register, getRegistration: async () => undefined, startMessages() {} }),
    })
    Object.defineProperty(Notification, 'permission', { value: 'default' })
    Notification.requestPermission = async () => 'granted'
  }`)
  await page.goto(`${url}/v1/console/#/settings`)
  await page.reload()
  await page.getByRole('button', { name: 'Turn on' }).click()
  await page.getByText('The browser did not start what shows notifications.').waitFor()
  t.equal(await page.getByRole('button', { name: 'Turn on' }).isEnabled(), true)
})
