const PATHS = {
  inbox: 'M3 13l2.5-8h13L21 13v6H3zM3 13h5l1.5 2.5h5L16 13h5',
  sessions: 'M4 6h16M4 12h11M4 18h7',
  queue: 'M5 5h4v4H5zM5 15h4v4H5zM13 7h7M13 17h7',
  usage: 'M4 20V11M10 20V4M16 20v-7M21 20H3',
  profiles: 'M12 12a4 4 0 100-8 4 4 0 000 8zM4 20c1-4 4-6 8-6s7 2 8 6',
  settings: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4',
  more: 'M5 11.5a.5.5 0 100 1 .5.5 0 000-1M12 11.5a.5.5 0 100 1 .5.5 0 000-1M19 11.5a.5.5 0 100 1 .5.5 0 000-1',
  plus: 'M12 5v14M5 12h14',
  search: 'M11 18a7 7 0 100-14 7 7 0 000 14zM20 20l-4-4',
  close: 'M6 6l12 12M18 6L6 18',
  back: 'M14 6l-6 6 6 6',
  down: 'M12 5v14M6 13l6 6 6-6',
  chevron: 'M9 6l6 6-6 6',
  download: 'M12 4v11M7 11l5 5 5-5M4 20h16',
  send: 'M5 12h13M12 6l6 6-6 6',
  stop: 'M7 7h10v10H7z',
} as const

export type IconName = keyof typeof PATHS

/** A drawing beside a text that says the same; whoever stands alone has a label. */
export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d={PATHS[name]} />
  </svg>
)
