import { Component, type ComponentChildren, type FunctionComponent } from 'preact'

/** Renders again only when one of its properties is another one than before. */
export function memo<P extends object>(render: FunctionComponent<P>): FunctionComponent<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const before = this.props as Record<string, unknown>
      const names = Object.keys(next)
      return names.some((name) => (next as Record<string, unknown>)[name] !== before[name])
    }
    override render(props: P): ComponentChildren {
      const Inner = render
      return <Inner {...props} />
    }
  } as unknown as FunctionComponent<P>
}
