import { Component, type ComponentChildren, type FunctionComponent } from 'preact'

/** Renders again only when one of its properties is another one than before. @param isEqual default: whether it is the same value */
export function memo<P extends object>(
  render: FunctionComponent<P>,
  isEqual: (a: unknown, b: unknown) => boolean = Object.is,
): FunctionComponent<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const before = this.props as Record<string, unknown>
      const names = Object.keys(next)
      return names.some((name) => !isEqual((next as Record<string, unknown>)[name], before[name]))
    }
    override render(props: P): ComponentChildren {
      const Inner = render
      return <Inner {...props} />
    }
  } as unknown as FunctionComponent<P>
}
