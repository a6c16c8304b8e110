import { shellWord } from './shell-word.js'

/** Whether every account may write into a directory, and thereby rename what is not its own. In one like /tmp (sticky) nobody may. */
export const isOpenToAll = (mode: number): boolean => (mode & 0o1002) === 0o002

export const openToAllMessage = (directory: string): string =>
  `Every account of this machine may write into ${directory}, and put files of its own in the place of the gateway's; chmod o-w ${shellWord(directory)}`
