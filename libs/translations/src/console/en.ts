/** The frame of the console's pages: what stands around the text of each. */
export const console = {
  skip: 'Skip to the content',
  /** Of the links to the account of the person who is signed in. */
  you: 'You',
  signOut: 'Sign out',
  /** Of the folded menu, where the page is in none of its entries. */
  menu: 'Menu',
  overview: 'Overview',
  stores: 'Your stores',
  /** The pages of a store, with a short description for the overview. */
  navigation: {
    cards: { title: 'Cards', about: 'Design, rewards, limits' },
    customers: { title: 'Customers', about: 'Find people, correct stamps' },
    locations: { title: 'Locations', about: 'Your shops on the map' },
    posters: { title: 'Posters', about: 'To print and hang up' },
    messages: { title: 'Messages', about: 'Links sent to customers' },
    numbers: { title: 'Numbers', about: 'How your shop is doing' },
    transfers: { title: 'Import and export', about: 'Files in and out' },
    users: { title: 'Users', about: 'Who can sign in here' },
    tokens: { title: 'API tokens', about: 'For tills and web shops' },
    webhooks: { title: 'Webhooks', about: 'Events sent to other systems' },
    brand: { title: 'Brand', about: 'Logo, colours, contact' },
    settings: { title: 'Settings', about: 'Name, language, signup' },
    history: { title: 'History', about: 'Everything that happened' },
    audit: { title: 'Log', about: 'Changes to users and tokens' },
  },
};
