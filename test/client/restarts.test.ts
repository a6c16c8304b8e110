import { spawn } from 'node:child_process'
import { chromium } from 'playwright-core'
import t from 'tap'
import WebSocket from 'ws'
import { type Client, foldTranscript } from '../../client/index.js'
import { until } from '../fixtures/build.js'
import { ChaosProxy, type Mood } from '../fixtures/chaos-proxy.js'
import { mortalDaemon, TOKEN } from '../fixtures/daemon-process.js'
import { rounds } from '../fixtures/rounds.js'
import { bundle, CHROMIUM_FLAGS, chromiumPath, fetchNode } from '../fixtures/runtimes.js'
import { type ConsumerReport, type ConsumerTask, consume, plain } from '../fixtures/stream-consumer.js'

const KILLS = rounds(5, 50)
const SENDS = 8
const LONG = `@@[{"thinking":"${'So it goes. '.repeat(20)}","text":"${'One word after the other. '.repeat(60)}"}]@@`

interface Consumer {
  name: string
  mood: Mood
  skip?: string
  run(task: ConsumerTask): Promise<ConsumerReport>
}

t.test(`a gateway that is killed ${KILLS} times while it speaks, behind proxies that cut`, async (t) => {
  const world = await mortalDaemon(t)
  const consumers: Consumer[] = [
    { name: 'Node 20, ws', mood: 'cuts', run: (task) => consume(task, { WebSocket }) },
    { name: 'Node 20, upgrades blocked', mood: 'blocks upgrades', run: (task) => consume(task, { WebSocket }) },
    { name: 'Node 20, upgrades lost', mood: 'hides upgrades', run: (task) => consume(task, { WebSocket }) },
    { name: `Node ${process.version}, no sockets`, mood: 'cuts', run: inNode(process.execPath) },
    ...(await Promise.all(
      [22, 24].map(async (major) => {
        const binary = await fetchNode(major)
        return {
          name: `Node ${major}`,
          mood: 'cuts' as const,
          ...(binary ? { run: inNode(binary) } : { skip: 'cannot be fetched', run: never }),
        }
      }),
    )),
    {
      name: 'Chromium',
      mood: 'cuts',
      ...(chromiumPath ? { run: inChromium } : { skip: 'is not installed', run: never }),
    },
  ]
  const proxies: ChaosProxy[] = []
  const reports = new Map<string, Promise<ConsumerReport>>()
  const point = () => {
    for (const proxy of proxies) proxy.target = world.port
  }
  const { id } = await world.client.sessions.create({ cwd: world.work, profile: 'demo' })
  for (const [index, { name, mood, skip, run }] of consumers.entries()) {
    if (skip) continue
    const proxy = await ChaosProxy.start(t, mood, Math.random)
    proxies.push(proxy)
    const task = { baseUrl: `${proxy.origin}/v1`, token: TOKEN, sessionId: id, name: `c${index}`, sends: SENDS }
    const report = run(task)
    report.catch(() => {})
    reports.set(name, report)
  }
  point()
  for (let kills = 0; kills < KILLS; kills++) {
    await world.client.session(id).send(LONG)
    await isSpeaking(world.client, id)
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 150))
    for (const proxy of proxies) proxy.target = undefined
    await world.restart()
    point()
    if ((kills + 1) % 10 === 0) t.comment(`${kills + 1} kills, ${reports.size} consumers`)
  }
  const { client } = world
  await until(async () => {
    await new Promise((resolve) => setTimeout(resolve, 200))
    const ids = new Set(
      (await client.sessions.events(id).toArray()).flatMap((event) =>
        event.type === 'user_message' ? [event.commandId] : [],
      ),
    )
    const isSaid = [...reports.keys()].every((name) =>
      ids.has(`c${consumers.findIndex((consumer) => consumer.name === name)}-${SENDS}`),
    )
    return isSaid && (await client.sessions.get(id)).status === 'idle'
  }, 'everything that was said')
  await client.session(id).close()
  await until(async () => (await client.sessions.get(id)).status === 'closed', 'the end of the session')
  const told = (await client.sessions.events(id).toArray()).filter(({ type }) => type !== 'stream_delta')
  const saidIds = told.flatMap((event) => (event.type === 'user_message' && event.commandId ? [event.commandId] : []))
  t.equal(new Set(saidIds).size, saidIds.length, 'no message was taken twice')
  t.ok(told.filter(({ type }) => type === 'turn_completed').length >= KILLS, 'every kill cut a turn off')

  for (const [index, { name, skip, mood }] of consumers.entries())
    await t.test(name, { skip: skip ? `${name} ${skip}` : false }, async (t) => {
      const report = await reports.get(name)!
      t.strictSame(report.faults, [], 'no event twice, none out of order')
      t.equal(report.gaps, 0)
      t.strictSame(report.events, told, 'every event of the log')
      t.strictSame(report.transcript, plain(foldTranscript(told)), 'the same to see')
      const own = saidIds.filter((said) => said.startsWith(`c${index}-`))
      t.strictSame(own, report.confirmed, 'every message that was confirmed, in order')
      t.equal(own.length, SENDS)
      t.comment(`${report.transports.join(' and ')}`)
      if (mood !== 'cuts') t.strictSame(report.transports, ['event-stream'])
    })
  t.comment(JSON.stringify(proxies.map(({ counts }) => counts)))
})

async function isSpeaking(client: Client, id: string): Promise<void> {
  const { lastSeq } = await client.sessions.get(id)
  for await (const { type } of client.session(id).attach({ afterSeq: lastSeq })) if (type === 'stream_delta') return
}

const never = (): Promise<ConsumerReport> => Promise.reject(new Error('it is not there'))

/** In a process of its own, with the sockets that its version has. */
function inNode(binary: string) {
  return async (task: ConsumerTask): Promise<ConsumerReport> => {
    const script = `${await bundle('test/fixtures/stream-consumer.ts', { platform: 'node' })}
consume(${JSON.stringify(task)}).then((report) => process.stdout.write(JSON.stringify(report)))`
    const child = spawn(binary, ['--input-type=module'], { stdio: ['pipe', 'pipe', 'pipe'] })
    t.teardown(() => child.kill('SIGKILL'))
    child.stdin.end(script)
    let out = ''
    let errors = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text
    })
    await new Promise((resolve) => child.on('close', resolve))
    if (!out) throw new Error(errors)
    return JSON.parse(out)
  }
}

/** On a page that the proxy serves. */
async function inChromium(task: ConsumerTask): Promise<ConsumerReport> {
  const script = await bundle('test/fixtures/stream-consumer.ts', { platform: 'browser', globalName: 'consumer' })
  const context = await chromium.launchPersistentContext('', { executablePath: chromiumPath!, args: CHROMIUM_FLAGS })
  try {
    const page = await context.newPage()
    await page.goto(new URL('/page', task.baseUrl).href)
    await page.addScriptTag({ content: script })
    return await page.evaluate(
      (given) => (globalThis as unknown as { consumer: { consume: typeof consume } }).consumer.consume(given),
      task,
    )
  } finally {
    await context.close()
  }
}
