/** What has come into the place of something else, and was there before: as `.unhurried`, which is for what is drawn anew. */
export const unhurry = (button: Element): void =>
  void button.animate({ pointerEvents: ['none', 'none'] }, { duration: 500 })
