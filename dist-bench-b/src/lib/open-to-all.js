/** Whether every account may write into a directory, and thereby rename what is not its own. In one like /tmp (sticky) nobody may. */
export const isOpenToAll = (mode) => (mode & 0o1002) === 0o002;
export const openToAllMessage = (directory) => `Every account of this machine may write into ${directory}, and put files of its own in the place of the gateway's; chmod o-w ${directory}`;
//# sourceMappingURL=open-to-all.js.map