import { CLOSE } from '../schemas/close-codes.js';
import { visible } from '../src/principal.js';
import { StreamClient } from './streams.js';
/** One client of a session: its log and its frames, through an attachment. */
export class SessionClient extends StreamClient {
    session;
    attachment;
    constructor(open, session, request, parts) {
        super(open, request, parts);
        this.session = session;
    }
    attach(position) {
        try {
            this.attachment = this.session.attach(this, position);
        }
        catch {
            this.close(CLOSE.tooMany);
        }
    }
    admits(principal) {
        return visible(principal, this.session.profile.info.name);
    }
    cutOff(close) {
        this.attachment?.close(close);
    }
    onGone() {
        if (this.attachment)
            this.session.detach(this.attachment);
    }
    onDrain() {
        this.attachment?.resume();
    }
}
//# sourceMappingURL=session-client.js.map