import t from 'tap'
import type { ChannelOptions } from '../../src/notifications/channels/channels.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { clusterOf } from '../fixtures/cluster.js'
import { native } from '../fixtures/parked.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'
import { hasPostgres } from '../storage/postgres-world.js'

const HOUR_MS = 3_600_000
const ASK = { toolName: 'Bash', toolUseId: 't', input: {} }

if (hasPostgres())
  t.test(
    'what is settled elsewhere than where it was asked, those hear of that were reminded, and no others',
    async (t) => {
      const sink = await WebhookSink.start(t)
      const channel = (name: string): ChannelOptions => {
        const url = new URL(`/${name}`, sink.url).href
        return { format: 'ntfy', name, url, events: ['session_closed'] }
      }
      const { nodes } = await clusterOf(t, ['leaves', 'stays'], {
        ...{ script: native, parking: { parkDelayMs: 600_000 } },
        notifications: {
          channels: [channel('soon'), channel('late')],
          reminders: [
            { channel: 'soon', afterMs: 1 },
            { channel: 'late', afterMs: HOUR_MS },
          ],
        },
      })
      const [leaves, stays] = nodes
      const create = async () => {
        const { json } = await leaves.call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'x', approvalTimeoutMs: 0 })
        return String(json.id)
      }
      const told = (name: string) =>
        sink.received
          .filter(({ path }) => path === `/${name}`)
          .map(({ headers }) => String(headers.title).split(':')[0])

      await create()
      const atWork = leaves.engine.last
      // it has the reminders for as long as this turn lasts
      atWork.interrupt = async () => {}
      const id = await create()
      void leaves.engine.last.host.requestPermission(ASK).catch(() => {})
      await until(() => told('soon').length === 1, 'the reminder')
      const [{ request }] = (await stays.call('GET', '/inbox')).json
      const stopped = leaves.stop()
      await until(() => stays.storage.cluster!.nodes().some(({ draining }) => draining), 'it leaves')
      const answered = await stays.call('POST', `/sessions/${id}/permissions/${request.id}`, { behavior: 'allow' })
      t.equal(answered.status, 200, answered.text)
      await until(() => stays.engine.runners.length === 1, 'it goes on elsewhere')
      await stays.engine.last.host.requestPermission(ASK)
      await until(() => told('soon').length === 2, 'the answer')
      await stays.call('DELETE', `/sessions/${id}`)
      await until(() => ['soon', 'late'].every((name) => told(name).includes('Ended')), 'the end')
      t.same(told('soon'), ['Still waiting', 'Answered', 'Ended'])
      t.same(told('late'), ['Ended'])
      atWork.complete()
      await stopped
    },
  )
