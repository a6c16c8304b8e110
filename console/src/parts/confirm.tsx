import { texts } from '../texts.js'
import { Dialog } from './dialog.js'

interface ConfirmProps {
  /** The question. */
  title: string
  /** What becomes of it. */
  lead: string
  /** What is done: the word on the button. */
  action: string
  /** Default: Cancel. */
  leave?: string
  onConfirm: () => void
  onClose: () => void
}

/** Asks before what cannot be taken back. */
export const Confirm = ({ title, lead, action, leave = texts.shell.cancel, onConfirm, onClose }: ConfirmProps) => (
  <Dialog title={title} onClose={onClose}>
    <p>{lead}</p>
    <div class="form-end">
      <button type="button" class="quiet" onClick={onClose}>
        {leave}
      </button>
      <button type="button" class="danger" onClick={onConfirm}>
        {action}
      </button>
    </div>
  </Dialog>
)
