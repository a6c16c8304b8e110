import type { FunctionComponent } from 'preact'
import type { IconName } from './parts/icon.js'
import { texts } from './texts.js'

export interface Screen {
  /** What the address begins with: `#/inbox`. */
  name: string
  title: string
  icon: IconName
  /** Loaded when it is shown first: `export const screen: FunctionComponent` */
  load: () => Promise<{ screen: FunctionComponent }>
  /** Keeps out of the bar of a phone; it is then under "More". */
  isMinor?: boolean
}

/** The screens, in the order of the navigation. */
export const SCREENS: readonly Screen[] = [
  { name: 'inbox', title: texts.inbox.title, icon: 'inbox', load: () => import('./screens/inbox.js') },
  { name: 'sessions', title: texts.sessions.title, icon: 'sessions', load: () => import('./screens/sessions.js') },
  { name: 'queue', title: texts.queue.title, icon: 'queue', load: () => import('./screens/queue.js') },
  { name: 'usage', title: texts.usage.title, icon: 'usage', load: () => import('./screens/usage.js') },
  {
    name: 'profiles',
    title: texts.profiles.title,
    icon: 'profiles',
    load: () => import('./screens/profiles.js'),
    isMinor: true,
  },
  {
    name: 'settings',
    title: texts.settings.title,
    icon: 'settings',
    load: () => import('./screens/settings.js'),
    isMinor: true,
  },
]
