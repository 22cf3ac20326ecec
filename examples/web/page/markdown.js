// What models write, as Markdown. markdown-it takes HTML for text, and here it makes
// links to pages and addresses of mail only, and no pictures, which would be loaded from
// other sites.
import MarkdownIt from "./markdown-it.js";

const markdown = new MarkdownIt({ html: false, linkify: false, breaks: true }).disable("image");
export const isLink = (url) => /^(https?:\/\/|mailto:)/i.test(url);
markdown.validateLink = isLink;
markdown.renderer.rules.link_open = (tokens, at, options, env, self) => {
  tokens[at].attrSet("target", "_blank");
  tokens[at].attrSet("rel", "noopener noreferrer");
  return self.renderToken(tokens, at, options);
};

export const render = (text) => markdown.render(text);
