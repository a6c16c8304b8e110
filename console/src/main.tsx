import { render } from 'preact'
import { App } from './app.js'
import './styles/tokens.css'
import './styles/base.css'
import './styles/shell.css'

render(<App />, document.getElementById('app')!)
