import type { Signal } from '@preact/signals'
import { Icon } from './icon.js'

/** In the head of a list: opens the dialog that makes one more. */
export const Create = ({ label, isOpen }: { label: string; isOpen: Signal<boolean> }) => (
  <button
    type="button"
    class="primary"
    onClick={() => {
      isOpen.value = true
    }}
  >
    <Icon name="plus" />
    {label}
  </button>
)
