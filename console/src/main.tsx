import { render } from 'preact'
import { App } from './app.js'
import { route } from './route.js'
import { SCREENS } from './screens.js'
import './styles/tokens.css'
import './styles/base.css'
import './styles/shell.css'
import './styles/print.css'

// a file has no place here: the browser would open it in the place of the page
for (const type of ['dragover', 'drop'] as const)
  addEventListener(type, (event) => {
    if (!event.dataTransfer?.types.includes('Files')) return
    event.preventDefault()
    event.dataTransfer.dropEffect = 'none'
  })

// the screen is needed once it is known who is in: it comes meanwhile; a failure shows when it is asked for again
SCREENS.find(({ name }) => name === route.value.name)
  ?.load()
  .catch(() => {})
render(<App />, document.getElementById('app')!)
