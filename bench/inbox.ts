import { format, interleave, line, median, percentile, verdict } from './lib/figures.js'
import { RawHttp } from './lib/raw-http.js'
import { ServerProcess } from './lib/server-process.js'

const WAITING = 10_000
const PAGES = 200
const ROUNDS = 7
const PAGE_TARGET_MS = 5

/** What it costs to look at what waits for a person, where much does: a page of 50, and the count, beside the same items from a bare route. */
export async function inbox(): Promise<void> {
  const server = await ServerProcess.start('servers/approvals.js')
  for (let waiting = 0; waiting < WAITING; waiting += 500) await server.call('park', 500)
  const http = await RawHttp.open(await server.call<string>('url'))
  const bare = await RawHttp.open(await server.call<string>('bareUrl'))
  const { body } = await http.request('GET', '/v1/inbox?limit=50')
  const items = JSON.parse(body) as unknown[]
  if (items.length !== 50) throw new Error(`a page of ${items.length}`)
  await server.call('setBare', items)

  const times: number[] = []
  const asking = (on: RawHttp, path: string, kept?: number[]) => async () => {
    const round: number[] = []
    for (let n = 0; n < PAGES; n++) {
      const start = performance.now()
      const { status } = await on.request('GET', path)
      round.push(performance.now() - start)
      if (status !== 200) throw new Error(`${path} answered ${status}`)
    }
    kept?.push(...round)
    return median(round)
  }
  const page = asking(http, '/v1/inbox?limit=50', times)
  const paired = await interleave(ROUNDS, page, asking(bare, '/bare'))
  console.log(line(`GET /inbox?limit=50 of ${WAITING} parked approvals`, paired, 'ms'))
  console.log(
    `  p50 ${format(median(times))} ms, p99 ${format(percentile(times, 0.99))} ms` +
      verdict(median(times), PAGE_TARGET_MS, 'ms'),
  )
  const counts = await interleave(ROUNDS, asking(http, '/v1/inbox/count'), asking(bare, '/bare'))
  console.log(line('GET /inbox/count, beside a bare page', counts, 'ms'))
  http.close()
  bare.close()
  await server.stop()
}
