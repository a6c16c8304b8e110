import { useSignal } from '@preact/signals'
import { answered } from '../../api.js'
import { Icon } from '../../parts/icon.js'
import { Failure, Underway } from '../../parts/notice.js'
import { save } from '../../parts/save.js'
import { texts } from '../../texts.js'

const says = texts.usage

/** All of it, by day, profile, agent and person, as the gateway writes it. */
export function Download({ from, to }: { from: string; to: string }) {
  const range = `${from}-${to}`
  const underway = useSignal<ReadonlySet<string>>(new Set())
  const failed = useSignal<{ range: string; error: unknown } | undefined>(undefined)
  const isUnderway = underway.value.has(range)
  const download = async (): Promise<void> => {
    if (underway.value.has(range)) return
    underway.value = new Set([...underway.value, range])
    failed.value = undefined
    try {
      const query = { from, to, by: 'day,profile,agent,person' }
      const csv = await answered('GET', '/usage', { query, accept: 'text/csv' }, (response) => response.blob())
      save(`usage-${range}.csv`, csv)
    } catch (error) {
      failed.value = { range, error }
    } finally {
      underway.value = new Set([...underway.value].filter((one) => one !== range))
    }
  }
  return (
    <>
      <button type="button" aria-disabled={isUnderway} onClick={() => void download()}>
        <Icon name="download" />
        {says.csv}
      </button>
      {isUnderway && <Underway />}
      {failed.value?.range === range && <Failure error={failed.value.error} />}
    </>
  )
}
