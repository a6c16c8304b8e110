import { ofFile } from './together.mjs'

export default ofFile
