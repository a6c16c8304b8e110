import { Page } from '../parts/page.js'
import { texts } from '../texts.js'

export function screen() {
  return <Page title={texts.inbox.title}>{null}</Page>
}
