import type { FastifyRequest } from 'fastify'
import { CLOSE, type Close } from '../schemas/close-codes.js'
import { type Principal, visible } from '../src/principal.js'
import type { Attachment, ClientSink } from '../src/sessions/clients/attachment.js'
import type { AttachPosition } from '../src/sessions/clients/clients.js'
import type { Session } from '../src/sessions/session.js'
import { StreamClient, type StreamParts } from './streams.js'
import type { OpenWire, Wire } from './wires.js'

/** One client of a session: its log and its frames, through an attachment. */
export class SessionClient<W extends Wire = Wire> extends StreamClient<W> implements ClientSink {
  protected readonly session: Session
  protected attachment: Attachment | undefined

  constructor(open: OpenWire<W>, session: Session, request: FastifyRequest, parts: StreamParts) {
    super(open, request, parts)
    this.session = session
  }

  attach(position: AttachPosition): void {
    try {
      this.attachment = this.session.attach(this, position)
    } catch {
      this.close(CLOSE.tooMany)
    }
  }

  protected admits(principal: Principal): boolean {
    return visible(principal, this.session.profile.info.name)
  }

  protected override cutOff(close: Close): void {
    this.attachment?.close(close)
  }

  protected onGone(): void {
    if (this.attachment) this.session.detach(this.attachment)
  }

  protected override onDrain(): void {
    this.attachment?.resume()
  }
}
