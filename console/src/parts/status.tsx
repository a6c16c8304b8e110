import type { SessionStatus } from '../../../client/index.js'
import { texts } from '../texts.js'

/** How a session stands: a mark, told apart by its shape too, and a word. */
export const Status = ({
  status,
  detail,
  isBare,
}: {
  status: SessionStatus
  detail?: string | undefined
  isBare?: boolean
}) => (
  <span class={`status status-${status}`} title={detail}>
    <span class="mark" aria-hidden="true" />
    <span class={isBare ? 'unseen' : undefined}>{texts.status[status] ?? status}</span>
  </span>
)
