import type { SessionInfo } from '../../../../client/index.js'
import { money } from '../../model/format.js'
import { isWaiting } from '../../model/session-filter.js'
import { Status } from '../../parts/status.js'
import { Time } from '../../parts/time.js'
import { Line } from '../../parts/untrusted.js'
import { hrefTo } from '../../route.js'
import { texts } from '../../texts.js'

const says = texts.sessions

/** One session: the whole row leads to it. */
export const Row = ({ session, line }: { session: SessionInfo; line: string }) => (
  <li class="session-row" data-asks={isWaiting(session)}>
    <Status status={session.status} detail={session.statusDetail} isBare />
    <div class="session-what">
      <a href={hrefTo('sessions', session.id)}>
        <Line text={session.title} class="session-title" length={120} />
      </a>
      <p class="session-line">
        {session.status === 'failed' && session.statusDetail ? (
          <Line text={session.statusDetail} class="bad" />
        ) : (
          <Line text={line || session.cwd} />
        )}
      </p>
    </div>
    <p class="session-state">
      {isWaiting(session) ? says.pending(session.pendingPermissions || 1) : texts.status[session.status]}
    </p>
    <p class="session-who">
      <Line text={session.profile} length={40} />
      {(session.agent ?? session.model) && (
        <Line text={session.agent ?? session.model ?? ''} class="quiet-text" length={40} />
      )}
    </p>
    <p class="session-cost" title={says.turns(session.numTurns)}>
      {session.cost > 0 ? money(session.cost) : says.turns(session.numTurns)}
    </p>
    <Time at={session.lastActivityAt} class="session-age" />
  </li>
)
