import { format, median } from './figures.js'
import { ServerProcess } from './server-process.js'

const PROBE_MS = 400

/** What the disk allows, measured between the slices of what is held against it: it moves tenfold within an hour. */
export class DiskProbe {
  readonly #server: ServerProcess
  readonly #syncs: number[] = []
  readonly #transactions: number[] = []

  private constructor(server: ServerProcess) {
    this.#server = server
  }

  static async open(folder: string): Promise<DiskProbe> {
    return new DiskProbe(await ServerProcess.start('servers/disk.js', { argv: [folder] }))
  }

  /** Resolves with the transactions a second, one after the other. */
  async measure(): Promise<number> {
    this.#syncs.push(await this.#server.call('syncs', PROBE_MS))
    const transactions = await this.#server.call<number>('transactions', PROBE_MS)
    this.#transactions.push(transactions)
    return transactions
  }

  /** Milliseconds of an append of 1 KB and its sync. */
  readonly syncMs = async (): Promise<number> => 1_000 / (await this.#server.call<number>('syncs', PROBE_MS))

  toString(): string {
    return (
      `the disk meanwhile: ${format(median(this.#syncs))} appends of 1 KB synced a second,` +
      ` ${format(median(this.#transactions))} bare SQLite transactions`
    )
  }

  stop(): Promise<void> {
    return this.#server.stop()
  }
}
