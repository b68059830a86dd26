<?php
/** Creates the tables, the permalinks, the users and their Application Passwords, and prints these as `name=password`. */
$_SERVER['HTTP_HOST'] = 'localhost';
define( 'WP_INSTALLING', true );
require $argv[1] . '/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
add_filter( 'pre_wp_mail', '__return_true' );
wp_install( 'A site for tests', 'admin', 'admin@example.org', true, '', 'the password of admin' );
update_option( 'permalink_structure', '/%postname%/' );
$users = array( 'admin' => 1 );
foreach ( array( 'ed' => 'editor', 'sam' => 'subscriber' ) as $name => $role ) {
	$users[ $name ] = wp_insert_user( array(
		'user_login'   => $name,
		'user_pass'    => "the password of $name",
		'user_email'   => "$name@example.org",
		'display_name' => ucfirst( $name ) . ' Doe',
		'role'         => $role,
	) );
}
foreach ( range( 1, 22 ) as $number ) {
	wp_insert_user( array(
		'user_login'   => sprintf( 'member%02d', $number ),
		'user_pass'    => 'x',
		'user_email'   => "member$number@example.org",
		'display_name' => sprintf( 'Member %02d', $number ),
	) );
}
foreach ( $users as $name => $id ) {
	list( $password ) = WP_Application_Passwords::create_new_application_password( $id, array( 'name' => 'tests' ) );
	echo "$name=$password\n";
}
