import { useSignal } from '@preact/signals'
import { apiBase } from '../../api.js'
import { Icon } from '../../parts/icon.js'
import { Failure } from '../../parts/notice.js'
import { texts } from '../../texts.js'

const says = texts.usage

/** All of it, by day, profile, agent and person, as the gateway writes it. */
export function Download({ from, to }: { from: string; to: string }) {
  const error = useSignal<unknown>(undefined)
  const download = async (): Promise<void> => {
    error.value = undefined
    try {
      const search = new URLSearchParams({ from, to, by: 'day,profile,agent,person' })
      const response = await fetch(`${apiBase}/usage?${search}`, {
        credentials: 'same-origin',
        headers: { accept: 'text/csv' },
      })
      if (!response.ok) {
        const { detail } = (await response.json()) as { detail?: string }
        throw new Error(detail ?? String(response.status))
      }
      save(await response.blob(), `usage-${from}-${to}.csv`)
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

function save(blob: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  // the browser has taken it by then
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
