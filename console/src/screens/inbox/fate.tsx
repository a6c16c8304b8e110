import type { Entry, Settled } from '../../model/inbox.js'
import { Time } from '../../parts/time.js'
import { Line } from '../../parts/untrusted.js'
import { texts } from '../../texts.js'

const says = texts.inbox

/** Who settled it, in words around a name that may be anything. */
function Who({ how }: { how: Settled }) {
  if (how.resolvedBy === 'timeout') return <>{says.byTimeout}</>
  if (how.resolvedBy === 'policy') return <>{says.byPolicy}</>
  const channel = how.by ? (says.channels[how.by.channel] ?? '') : ''
  return (
    <>
      {how.by?.principal === undefined ? says.bySomebody : <Name name={how.by.principal} />} {channel}
    </>
  )
}

const Name = ({ name }: { name: string }) => (
  <>
    {says.by('').trim()} <Line text={name} length={60} class="strong" />
  </>
)

/** What became of a request. */
export function FateLine({ fate }: Pick<Entry, 'fate'>) {
  switch (fate.state) {
    case 'waiting':
      return null
    case 'sending':
      return <span class="fate">{says.sending[fate.behavior]}</span>
    case 'mine':
      return (
        <span class={`fate fate-${fate.behavior}`}>
          {says.fates[fate.behavior]} {says.byYou}
        </span>
      )
    case 'elsewhere':
      if (!fate.how) return <span class="fate">{fate.how === null ? says.unknown : says.elsewhere}</span>
      return (
        <span class={`fate fate-${fate.how.behavior}`}>
          {says.fates[fate.how.behavior]} <Who how={fate.how} /> <Time at={fate.how.ts} />
        </span>
      )
  }
}
