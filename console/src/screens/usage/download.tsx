import { useSignal } from '@preact/signals'
import { answered } from '../../api.js'
import { Icon } from '../../parts/icon.js'
import { Failure } from '../../parts/notice.js'
import { save } from '../../parts/save.js'
import { texts } from '../../texts.js'

const says = texts.usage

/** All of it, by day, profile, agent and person, as the gateway writes it. */
export function Download({ from, to }: { from: string; to: string }) {
  const error = useSignal<unknown>(undefined)
  const download = async (): Promise<void> => {
    error.value = undefined
    try {
      const query = { from, to, by: 'day,profile,agent,person' }
      const csv = await answered('GET', '/usage', { query, accept: 'text/csv' }, (response) => response.blob())
      save(`usage-${from}-${to}.csv`, csv)
    } catch (failure) {
      error.value = failure
    }
  }
  return (
    <>
      <button type="button" onClick={() => void download()}>
        <Icon name="download" />
        {says.csv}
      </button>
      {error.value !== undefined && <Failure error={error.value} />}
    </>
  )
}
