/** The same for every service. The note is what Inkpad has to seal. */
export const stampBody = { stamps: 1, note: 'two flat whites and a cinnamon bun, at the bar' };
